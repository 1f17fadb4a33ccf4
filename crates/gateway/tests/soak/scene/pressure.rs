//! The ports for connections to a server run out: connections without a port are refused, all others work.

use super::{Outcome, Run, Server, judged};
use crate::bed::{Bed, FAR, Link, NEAR};
use crate::finding::Finding;
use crate::stop;
use crate::transfer::{Aborts, Tally, TransferSpec, crowd};
use skyhaul_base::Duration;
use std::sync::atomic::{AtomicU64, Ordering};

pub fn play(run: &Run) -> Outcome {
    let wanted: u64 = run.choose(5000, 150);
    let link = Link { delay: Duration::from_millis(10), ..Link::default() };
    let bed = Bed::new("pressure", link).ok_or("there are no namespaces, or no nft")?;
    // Twenty ports for connections to one server; a closed one is in TIME-WAIT for a minute.
    bed.spaces[FAR].sysctl("net/ipv4/ip_local_port_range", "40000 40019").map_err(|e| e.to_string())?;
    let server = Server::new(&bed)?;
    let _near = bed.gateway(NEAR, "");
    let far = bed.gateway_of(FAR, "", "preserve = \"none\"\n", "");
    let (tally, next) = (Tally::default(), AtomicU64::new(0));
    crowd(&bed, 32, &tally, &|| {
        let n = next.fetch_add(1, Ordering::Relaxed);
        (n < wanted && !stop::requested())
            .then(|| TransferSpec { aborts: Aborts::Nobody, ..TransferSpec::draw(n, 50_000.0) })
    })?;
    let mut findings = vec![
        Finding::at_least("connections refused for want of a port", far.count("refused") as f64, 1.0, ""),
        Finding::at_least("transfers that arrived whole", tally.of(|t| &t.whole), 10.0, ""),
    ];
    findings.extend(judged(&tally, &server, true));
    Ok(findings)
}
