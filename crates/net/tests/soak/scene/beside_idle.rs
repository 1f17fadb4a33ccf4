//! Two servers, one with many connections that say nothing: what one more connection achieves with each, in turn.

use super::{Outcome, Run};
use crate::bed::{self, Server};
use crate::client;
use crate::crowd::Crowd;
use crate::finding::Finding;
use crate::stop;
use skyhaul_net::Namespace;
use std::io::{self, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

pub fn play(run: &Run) -> Outcome {
    let n: usize = run.choose(20_000, 300);
    let (bytes, repetitions): (usize, usize) = run.choose((400_000_000, 9), (5_000_000, 2));
    let spaces = [bed::space()?, bed::space()?];
    let servers = [Server::start(&spaces[0], false, |_| {})?, Server::start(&spaces[1], false, |_| {})?];
    let (idle, _) = Crowd::new(&spaces[1], n)?;
    // Meanwhile the server releases the buffers of the idle connections.
    bed::sleep(Duration::from_millis(2500));
    // Megabits per second by direction: beside none, beside many.
    let mut rates = [[Vec::new(), Vec::new()], [Vec::new(), Vec::new()]];
    for i in 0..repetitions {
        for (direction, rates) in rates.iter_mut().enumerate() {
            // The server that is measured first alternates.
            for k in [i % 2, 1 - i % 2] {
                if stop::requested() {
                    return Err("stopped".into());
                }
                rates[k].push(measure(&spaces[k], bytes, direction == 0)?);
            }
        }
    }
    let connections = servers[1].snapshot()?.connections;
    let mut findings = vec![Finding::at_least("idle connections", connections as f64, n as f64, "")];
    for (name, [none, many]) in ["to a reader", "from a sender"].iter().zip(&rates) {
        let mut ratios: Vec<f64> = none.iter().zip(many).map(|(none, many)| many / none).collect();
        findings.push(Finding::recorded(
            format!("{name} of ours, without idle connections"),
            median(none),
            "Mbit/s",
        ));
        findings.push(Finding::recorded(
            format!("{name} of ours, with idle connections"),
            median(many),
            "Mbit/s",
        ));
        ratios.sort_by(f64::total_cmp);
        let middle = median(&ratios);
        findings.push(
            Finding::at_least(format!("{name} of ours, ratio within a repetition, median"), middle, 0.9, "")
                .timed(),
        );
        findings.push(Finding::recorded(format!("{name} of ours, ratio, minimum"), ratios[0], ""));
    }
    drop(idle);
    for server in servers {
        server.end()?;
    }
    Ok(findings)
}

/// Megabits per second of a connection that sends to the server, or fetches from it.
fn measure(ns: &Namespace, bytes: usize, sends: bool) -> Result<f64, String> {
    let one = || -> io::Result<f64> {
        let port = if sends { bed::SINK } else { bed::HTTP };
        let mut s = client::connect(bed::at(0, port))?;
        let began = Instant::now();
        if sends {
            let (data, mut left) = (vec![b'z'; 1 << 16], bytes);
            while left > 0 {
                left -= s.write(&data[..left.min(data.len())])?;
            }
            s.shutdown(Shutdown::Write)?;
            // Its FIN comes when everything was read.
            client::to_the_end(&mut s)?;
        } else {
            client::fetch(&mut s, bytes, false)?;
        }
        Ok(bytes as f64 * 8e-6 / began.elapsed().as_secs_f64())
    };
    ns.within(one).map_err(|e| e.to_string())?.map_err(|e| e.to_string())
}

fn median(values: &[f64]) -> f64 {
    let mut all = values.to_vec();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}
