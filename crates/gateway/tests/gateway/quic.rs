//! A QUIC download between the client and the server of a bed, by quinn with its default control, CUBIC.

use crate::bed::{Bed, CLIENT, SERVER};
use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use quinn::{ClientConfig, Endpoint, IdleTimeout, ServerConfig, TransportConfig, VarInt};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Port of the server.
const PORT: u16 = 7443;
/// Windows beyond what any link here needs.
const WINDOW: u32 = 16 << 20;

fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.stream_receive_window(WINDOW.into()).receive_window(WINDOW.into()).send_window(WINDOW.into());
    transport.max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(30_000))));
    Arc::new(transport)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Downloads for this time after the handshake; returns the bytes that have arrived.
pub(crate) fn download(bed: &Bed, time: Duration) -> u64 {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let certificate = CertificateDer::from(made.cert);
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).expect("a root");
    let to: SocketAddr = ([10, 2, 0, 2], PORT).into();
    let (ready, is_ready) = channel();
    let server = move || {
        runtime().block_on(async {
            let mut config = ServerConfig::with_single_cert(vec![certificate], key.into()).expect("a server");
            config.transport_config(transport());
            let endpoint = Endpoint::server(config, to).expect("binds");
            ready.send(()).expect("is awaited");
            let connection = endpoint.accept().await.expect("a client").await.expect("connects");
            let mut stream = connection.open_uni().await.expect("a stream");
            let chunk = vec![7; 1 << 16];
            while stream.write_all(&chunk).await.is_ok() {}
        });
    };
    let client = move || {
        runtime().block_on(async {
            let mut config = ClientConfig::with_root_certificates(Arc::new(roots)).expect("a client");
            config.transport_config(transport());
            let mut endpoint = Endpoint::client(([0, 0, 0, 0], 0).into()).expect("binds");
            endpoint.set_default_client_config(config);
            let connection = endpoint.connect(to, "localhost").expect("a name").await.expect("connects");
            let mut bytes = 0;
            let read = async {
                let mut stream = connection.accept_uni().await.expect("a stream");
                while let Ok(Some(chunk)) = stream.read_chunk(1 << 16, true).await {
                    bytes += chunk.bytes.len() as u64;
                }
            };
            let _ = tokio::time::timeout(time, read).await;
            connection.close(VarInt::from_u32(0), b"enough");
            endpoint.wait_idle().await;
            bytes
        })
    };
    let serves = bed.spaces[SERVER].within(|| std::thread::spawn(server)).expect("enters");
    is_ready.recv().expect("the server is ready");
    let bytes = bed.spaces[CLIENT].within(client).expect("enters");
    serves.join().expect("serves");
    bytes
}
