//! A file through quinn and the kernel, over loopback.

use crate::bed::{certificate, content};
use crate::supported::supported;
use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig, rustls::RootCertStore};
use skyhaul_cc::Config;
use skyhaul_quic::Factory;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

const LENGTH: u64 = 400_000;

async fn send(name: &str) -> Result<(), Box<dyn Error>> {
    let (certificate, key) = certificate();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone())?;
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));

    let server = Endpoint::server(ServerConfig::with_single_cert(vec![certificate], key.into())?, any)?;
    let address = server.local_addr()?;
    let receiver = async {
        let connection = server.accept().await.expect("a connection").await?;
        let received = connection.accept_uni().await?.read_to_end(usize::MAX).await?;
        connection.close(0_u32.into(), b"received");
        Ok::<_, Box<dyn Error>>(received)
    };

    let mut transport = TransportConfig::default();
    transport
        .congestion_controller_factory(Arc::new(Factory::new(Config::by_name(name).expect("built in"))?));
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    config.transport_config(Arc::new(transport));
    let client = Endpoint::client(any)?;
    let sender = async {
        let connection = client.connect_with(config, address, "localhost")?.await?;
        let mut stream = connection.open_uni().await?;
        stream.write_all(&(0..LENGTH).map(content).collect::<Vec<_>>()).await?;
        stream.finish()?;
        connection.closed().await;
        Ok::<_, Box<dyn Error>>(connection.stats().path.cwnd)
    };

    let (received, window) = tokio::join!(receiver, sender);
    let (received, window) = (received?, window?);
    assert_eq!(received.len() as u64, LENGTH, "{name}");
    assert!(received.iter().zip(0..).all(|(&byte, n)| byte == content(n)), "{name}: other bytes arrived");
    assert!(window >= 2 * 1200, "{name}: {window}");
    Ok(())
}

#[tokio::test]
async fn every_control_carries_a_file_over_loopback() -> Result<(), Box<dyn Error>> {
    for name in supported() {
        send(name).await?;
    }
    Ok(())
}
