//! `skyhaul gateway capture`: files of the packets and events of chosen connections.

use super::Target;
use crate::args::GatewayCaptureArgs;
use crate::interrupt;
use crate::output::note;
use crate::stop::Stop;
use skyhaul_gateway::capture::{self, EndText, Request};
use std::fs::File;
use std::io::BufWriter;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

pub(super) fn run(args: &GatewayCaptureArgs) -> Result<(), Stop> {
    if args.pcap.is_none() && args.qlog.is_none() {
        return Err(Stop::bad("nothing to write: name a file with --pcap, --qlog or both"));
    }
    if args.payload && args.pcap.is_none() {
        return Err(Stop::bad("--payload is for packets: name a file for them with --pcap"));
    }
    let end = |key: &str, text: &Option<String>| -> Result<EndText, Stop> {
        let parsed = text.as_deref().map(str::parse).transpose();
        parsed.map(Option::unwrap_or_default).map_err(|e: String| Stop::bad(format!("{key}: {e}")))
    };
    let request = Request {
        flow: args.flow,
        client: end("--client", &args.client)?,
        server: end("--server", &args.server)?,
        pcap: args.pcap.is_some(),
        qlog: args.qlog.is_some(),
        payload: args.payload,
        packets: args.packets,
        bytes: Some(args.bytes.0),
        seconds: Some(args.time.0.as_secs_f64()),
    };
    let target = Target::of(&args.gateway)?;
    let pcap = args.pcap.as_deref().map(create).transpose()?;
    let qlog = match args.qlog.as_deref().map(create).transpose() {
        Ok(file) => file,
        Err(e) => {
            remove(args.pcap.as_deref());
            return Err(e);
        }
    };
    interrupt::listen();
    let done = capture::run(&target.folder, &target.name, &request, interrupt::requested, pcap, qlog);
    let done = done.map_err(|e| {
        // A file without content is removed: the same command would refuse it as an existing file.
        for path in [&args.pcap, &args.qlog].into_iter().flatten() {
            if std::fs::metadata(path).is_ok_and(|m| m.len() == 0) {
                remove(Some(path));
            }
        }
        Stop::bad(e)
    })?;
    let end = match done.ended.as_str() {
        "limit" => "a limit was reached",
        "flow-ended" => "the connection has ended",
        "gateway-ended" => "the gateway has ended",
        _ => "ended by you",
    };
    note(&format!(
        "{} packets, {} events, {} lost because they came too fast; {end}\n",
        done.packets, done.events, done.dropped
    ));
    Ok(())
}

/// A new file that only its owner may read: it holds addresses, and with `--payload` the users' data.
fn create(path: &Path) -> Result<BufWriter<File>, Stop> {
    let made = File::options().write(true).create_new(true).mode(0o600).open(path);
    made.map(BufWriter::new).map_err(|e| match e.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Stop::bad(format!("{} exists already: name another file, or remove it", path.display()))
        }
        _ => Stop::write(path, &e),
    })
}

fn remove(path: Option<&Path>) {
    if let Some(path) = path {
        let _ = std::fs::remove_file(path);
    }
}
