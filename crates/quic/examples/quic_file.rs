//! Sends a file by QUIC with one congestion control after another, and prints a line for each.
//!
//! ```sh
//! cargo run --release -p skyhaul-quic --example quic_file -- serve 10.83.0.2:4433 cert.der      # outside of the link
//! skyhaul emulate preset:peach-geo --set links.sat.error.p=1e-2 -- \
//!     target/release/examples/quic_file send 10.83.0.2:4433 cert.der 10MB quinn:cubic hark      # behind it
//! ```
//!
//! `quinn:cubic`, `quinn:newreno` and `quinn:bbr` are quinn's own controls; every other name is one of Skyhaul's.

use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use quinn::{ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig, VarInt};
use skyhaul_cc::{Config, NAMES};
use skyhaul_quic::Factory;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

type Outcome<T> = Result<T, Box<dyn Error>>;

const USAGE: &str = "usage: quic_file serve ADDRESS:PORT CERTIFICATE
       quic_file send ADDRESS:PORT CERTIFICATE SIZE CONTROL...

SIZE is a number of megabytes such as 10MB. CONTROL is quinn:cubic, quinn:newreno, quinn:bbr,
or the name of one of Skyhaul's controls such as cubic.";

/// Largest amount of data that may be in flight: well above any bandwidth-delay product here, so that only congestion
/// control decides. Bytes.
const WINDOW: u32 = 64 << 20;

fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    let window = VarInt::from_u32(WINDOW);
    transport.stream_receive_window(window).receive_window(window).send_window(WINDOW.into());
    transport
}

/// Counts what each stream brings, and answers with the number of bytes.
async fn serve(address: SocketAddr, certificate: &str) -> Outcome<()> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    tokio::fs::write(certificate, made.cert.der()).await?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let mut config = ServerConfig::with_single_cert(vec![made.cert.der().clone()], key.into())?;
    config.transport_config(Arc::new(transport()));
    let endpoint = Endpoint::server(config, address)?;
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async {
            if let Err(e) = receive(incoming).await {
                eprintln!("{e}");
            }
        });
    }
    Ok(())
}

async fn receive(incoming: quinn::Incoming) -> Result<(), Box<dyn Error + Send + Sync>> {
    let connection = incoming.await?;
    let (mut answer, mut file) = connection.accept_bi().await?;
    let mut received: u64 = 0;
    while let Some(chunk) = file.read_chunk(usize::MAX, true).await? {
        received += chunk.bytes.len() as u64;
    }
    answer.write_all(&received.to_be_bytes()).await?;
    answer.finish()?;
    connection.closed().await;
    Ok(())
}

/// The controller of that name.
fn control(name: &str) -> Outcome<Arc<dyn ControllerFactory + Send + Sync>> {
    Ok(match name {
        "quinn:cubic" => Arc::new(CubicConfig::default()),
        "quinn:newreno" => Arc::new(NewRenoConfig::default()),
        "quinn:bbr" => Arc::new(BbrConfig::default()),
        _ => {
            let config = Config::by_name(name).filter(|_| NAMES.contains(&name));
            let config =
                config.ok_or_else(|| format!("there is no control {name:?}: {}", NAMES.join(", ")))?;
            Arc::new(Factory::new(config)?)
        }
    })
}

struct Sent {
    seconds: f64,
    connection: Connection,
}

async fn send(address: SocketAddr, roots: Arc<RootCertStore>, size: usize, name: &str) -> Outcome<Sent> {
    let mut config = ClientConfig::with_root_certificates(roots)?;
    let mut transport = transport();
    transport.congestion_controller_factory(control(name)?);
    config.transport_config(Arc::new(transport));
    let endpoint = Endpoint::client(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?;
    #[expect(clippy::disallowed_methods, reason = "an example measures real time")]
    let began = Instant::now();
    let connection = endpoint.connect_with(config, address, "localhost")?.await?;
    let (mut file, mut answer) = connection.open_bi().await?;
    file.write_all(&vec![0x5a; size]).await?;
    file.finish()?;
    let received = answer.read_to_end(8).await?;
    let seconds = began.elapsed().as_secs_f64();
    if received != (size as u64).to_be_bytes() {
        return Err("the server received another number of bytes".into());
    }
    connection.close(0_u32.into(), b"received");
    endpoint.wait_idle().await;
    Ok(Sent { seconds, connection })
}

/// "10MB", bytes.
fn size(text: &str) -> Outcome<usize> {
    let number =
        text.strip_suffix("MB").and_then(|n| n.parse::<usize>().ok()).filter(|n| (1..=1000).contains(n));
    Ok(number.ok_or_else(|| format!("{text:?} is no size: write 1MB to 1000MB"))? * 1_000_000)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["serve", address, certificate] => serve(address.parse()?, certificate).await,
        ["send", address, certificate, length, controls @ ..] if !controls.is_empty() => {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from(tokio::fs::read(certificate).await?))?;
            let (address, roots, bytes) = (address.parse()?, Arc::new(roots), size(length)?);
            println!("{:<16} {:>8} {:>8} {:>8} {:>8}", "control", "s", "Mbit/s", "packets", "lost");
            for name in controls {
                let Sent { seconds, connection } = send(address, Arc::clone(&roots), bytes, name).await?;
                let path = connection.stats().path;
                let rate = bytes as f64 * 8.0 / seconds / 1e6;
                println!(
                    "{name:<16} {seconds:>8.2} {rate:>8.2} {:>8} {:>8}",
                    path.sent_packets, path.lost_packets
                );
            }
            Ok(())
        }
        _ => {
            eprintln!("{USAGE}");
            std::process::exit(2)
        }
    }
}
