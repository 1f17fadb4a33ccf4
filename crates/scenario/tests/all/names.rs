//! Links, flows and gateways may have names that keys have.

use skyhaul_scenario::{LoadError, Resolved, resolve_text};

fn load(path: &str) -> Result<String, LoadError> {
    match path {
        "base.toml" => Ok("duration = '10 s'\n\
            links.delay = { rate = '1 Mbit/s', delay = '1 ms' }\n\
            links.trace = { rate = '2 Mbit/s', delay = '2 ms' }\n\
            links.kind = { rate = { trace = 't.csv' }, delay = '3 ms' }\n\
            flows.start = { path = ['delay', 'trace', 'kind'], count = 2 }\n"
            .into()),
        "t.csv" => Ok("time_s,rate_mbit_s\n0,3\n".into()),
        _ => Err(LoadError::System("no such file".into())),
    }
}

fn resolve(above: &str, sets: &[&str]) -> Result<Resolved, String> {
    let text = format!("extends = 'base.toml'\n{above}");
    resolve_text("top.toml", &text, sets, &load).map_err(|e| e.to_string())
}

#[test]
fn they_are_merged_and_read_as_others_are() {
    let all = |r: &Resolved| r.links.iter().map(|l| l.name.clone()).collect::<Vec<_>>();
    let base = resolve("", &[]).unwrap();
    assert_eq!(all(&base), ["delay", "kind", "trace"]);
    assert!(base.links[1].forward.rate.varies());
    // A link called `orbit` takes the place of no link called `delay`.
    let more = resolve("links.orbit = { rate = '1 Mbit/s', delay = '1 ms' }", &[]).unwrap();
    assert_eq!(all(&more), ["delay", "kind", "orbit", "trace"]);
    // Keys of a link below one called `trace`, of a flow called `start`.
    let changed = resolve("links.delay.delay = '9 ms'\nflows.start.count = 3", &[]).unwrap();
    assert_eq!((all(&changed), changed.flows[0].count, changed.flows[0].path.len()), (all(&base), 3, 3));
    let set = resolve("", &["links.trace.delay=9 ms", "flows.start.cc.recovery=newreno"]);
    assert!(set.is_err_and(|e| e.contains("flows.start.cc.recovery: unknown key")));
    // In a table of an event.
    let event = "[[event]]\nat = '1 s'\n[event.set.links]\nkind.rate = '5 Mbit/s'\ntrace.rate = { trace = 't.csv' }\n";
    assert_eq!(resolve(event, &[]).unwrap().events.len(), 4);
}

#[test]
fn a_flow_called_cc_may_name_a_reading() {
    let reading = "flows.cc = { path = ['delay'], cc = { name = 'peach', reading = 'listing' } }";
    let plain = "flows.cc = { path = ['delay'], cc = 'peach' }";
    assert_ne!(resolve(reading, &[]).unwrap().flows[0].cc, resolve(plain, &[]).unwrap().flows[0].cc);
}

#[test]
fn options_of_a_users_control_are_no_files() {
    let own =
        "flows.start.cc = { name = 'user', control = 'mine', options = { trace = 'gone.csv', delay = 1 } }";
    let resolved = resolve(own, &["flows.start.cc.options.orbit=2"]).unwrap();
    let text = resolved.to_toml();
    assert!(
        text.contains("trace = \"gone.csv\"") && text.contains("delay = 1") && text.contains("orbit = 2"),
        "{text}"
    );
}

#[test]
fn legs_have_names_of_their_own() {
    let chain = |gateway: &str, more: &str| {
        format!("path = ['delay', 'trace'], chain = {{ kind = 'split2', gateways = ['{gateway}'] {more} }}")
    };
    let gateways =
        "gateways.c.behind = 'delay'\ngateways.b-c.behind = 'delay'\ngateways.transport.behind = 'delay'\n";
    let (one, other) = (chain("b-c", ""), chain("c", ""));
    let e = resolve(&format!("{gateways}flows.a = {{ {one} }}\nflows.a-b = {{ {other} }}"), &[]).unwrap_err();
    assert!(e.contains("has the same name in the results, \"a-b-c\": rename this, or a gateway"), "{e}");
    let e = resolve(&format!("{gateways}flows.a = {{ {other} }}\nflows.a-c = {{ path = ['delay'] }}"), &[]);
    let want = "top.toml:6: flows.a-c: flows.a.chain.legs.c has the same name in the results, \"a-c\"";
    assert!(e.as_ref().is_err_and(|e| e.starts_with(want)), "{e:?}");
    // The key of a message about a gateway called `transport`.
    let legs = ", legs = { transport = { transport = 'xtp-like' } }";
    let flow =
        chain("transport", legs).replace("split2", "split3").replace("['transport']", "['transport', 'far']");
    let gateways = "gateways.transport.behind = 'delay'\ngateways.far.behind = 'trace'\n";
    let flow = flow.replace("'trace']", "'trace', 'kind']").replace("'xtp-like'", "'xtp-like', cc = 'sack'");
    let e = resolve(&format!("{gateways}flows.a = {{ {flow} }}"), &[]).unwrap_err();
    assert!(e.contains("flows.a.chain.legs.transport.cc: \"xtp-like\" has no"), "{e}");
}
