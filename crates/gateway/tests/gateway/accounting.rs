//! Lines about connections for those who account for them: at sockets of collectors, while connections are open and when they end.

use crate::bed::{Bed, CLIENT, FAR, NEAR};
use crate::{calm, echo, exchange, listen, server};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

pub(crate) const ALL: [(&str, fn()); 1] =
    [("collectors_account_for_all_bytes", collectors_account_for_all_bytes)];

fn line(datagram: &[u8]) -> Value {
    serde_json::from_slice(datagram).expect("one line of JSON")
}

fn number(line: &Value, pointer: &str) -> u64 {
    line.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer} in {line}"))
}

fn collectors_account_for_all_bytes() {
    let Some(bed) = Bed::new("accounting", calm()) else { return };
    let path = bed.folder.join("collector");
    let patience = Some(Duration::from_secs(30));
    let bind = || {
        let collector = UnixDatagram::bind(&path).expect("binds");
        collector.set_read_timeout(patience).expect("sets");
        collector
    };
    let collector = bind();
    let next = |collector: &UnixDatagram| {
        let mut room = [0; 4096];
        let n = collector.recv(&mut room).expect("a line");
        line(&room[..n])
    };
    let bulk = "[[class]]\nname = \"bulk\"\nports = [\"7000-7010\"]\n";
    let near = bed.gateway(
        NEAR,
        &format!(
            "rate = \"50 Mbit/s\"\n{bulk}[[subscriber]]\nnetworks = [\"10.1.0.0/16\"]\nprefix-v4 = 24\nrate = \"40 Mbit/s\"\n\
             [log]\nflows = \"unix:{}\"\ninterval = \"10 s\"\n",
            path.display()
        ),
    );
    let there = bed.spaces[FAR].within(|| UdpSocket::bind("127.0.0.1:0").expect("binds")).expect("enters");
    there.set_read_timeout(patience).expect("sets");
    let to = there.local_addr().expect("an address");
    let far = bed.gateway(FAR, &format!("[log]\nflows = \"udp:{to}\"\n"));
    let serves = echo(listen(&bed, server()), 7);
    let connect = || bed.spaces[CLIENT].within(|| TcpStream::connect(server()).expect("connects"));
    let mut long = connect().expect("enters");
    long.write_all(&[1; 50_000]).expect("writes");
    // A connection that is open has a line at the interval, with its bytes so far; then one with all of them when it ends.
    let open = next(&collector);
    assert_eq!((&open["event"], &open["gateway"]), (&"flow-open".into(), &"near".into()));
    assert!(open.get("end").is_none() && open["seconds"].as_f64().is_some_and(|s| s >= 10.0), "{open}");
    assert_eq!((number(&open, "/bytes/to-link"), number(&open, "/bytes/to-hosts")), (50_000, 0));
    assert_eq!((&open["class"], &open["subscriber"]), (&"bulk".into(), &"10.1.0.0/24".into()));
    assert!(open["link"]["srtt-ms"].as_f64().is_some_and(|t| t >= 10.0), "{open}");
    // 50,000 bytes in segments of at most 1,448.
    assert!(number(&open, "/link/segments") >= 35 && open["link"]["retransmitted"].is_u64(), "{open}");
    long.write_all(&[2; 1000]).expect("writes");
    long.shutdown(Shutdown::Write).expect("half-closes");
    long.read_to_end(&mut Vec::new()).expect("reads");
    let mut ended = next(&collector);
    if ended["event"] == "flow-open" {
        ended = next(&collector);
    }
    assert_eq!((&ended["event"], &ended["end"]), (&"flow".into(), &"finished".into()));
    let identity =
        |l: &Value| (l["flow"].clone(), l["began"].clone(), l["client"].clone(), l["server"].clone());
    assert_eq!(identity(&ended), identity(&open));
    assert_eq!(open["client"], long.local_addr().expect("an address").to_string());
    // The echo begins with a hash of 32 bytes.
    assert_eq!((number(&ended, "/bytes/to-link"), number(&ended, "/bytes/to-hosts")), (51_000, 51_032));
    // The other gateway has no classes, and its collector is at a port of UDP.
    let mut room = [0; 4096];
    let n = there.recv(&mut room).expect("a line");
    let other = line(&room[..n]);
    assert_eq!((number(&other, "/bytes/to-link"), number(&other, "/bytes/to-hosts")), (51_032, 51_000));
    assert_eq!(
        (&other["class"], &other["subscriber"], &other["from"]),
        (&Value::Null, &Value::Null, &"link".into())
    );
    assert_eq!((near.count("lines-lost"), far.count("lines-lost")), (0, 0));
    // Without collectors connections are carried, and the lines that nobody takes are counted.
    drop((collector, there));
    std::fs::remove_file(&path).expect("removes");
    let each = || bed.spaces[CLIENT].within(|| exchange(server(), 7, 10_000)).expect("enters");
    (0..3).for_each(|_| each());
    while near.count("lines-lost") < 3 {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(near.count("lines-lost"), 3);
    assert!(near.ask("metrics").contains("skyhaul_gateway_log_lines_lost_total{gateway=\"near\"} 3\n"));
    // A collector that comes back is told how many it has missed.
    let collector = bind();
    each();
    assert_eq!(next(&collector)["event"], "flow");
    let missed = next(&collector);
    assert_eq!((&missed["event"], number(&missed, "/lines")), (&"lines-lost".into(), 3));
    // One that stands still stops nothing, not even the end of the gateway.
    (0..2).for_each(|_| each());
    serves.join().expect("serves");
    drop(far);
    near.stop();
}
