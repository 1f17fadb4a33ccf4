//! `skyhaul lab`: the page on which the simulator runs in a browser, at a loopback port.
//!
//! `make lab` builds the page, and the command finds it at run time: in `share/skyhaul/lab` beside the program's folder, or in
//! the checkout that the program was built from. The page is not part of the program, so that building the program needs neither Node nor a page built
//! before.

use crate::args::LabArgs;
use crate::interrupt;
use crate::output::{print, warn};
use crate::stop::Stop;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tiny_http::{Header, Method, Response, Server};

/// Polling interval for Ctrl-C.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The file that every page has.
const INDEX: &str = "index.html";

/// Serves the page until Ctrl-C. `own_command` begins with the path of the running program.
pub(crate) fn run(args: &LabArgs, own_command: &[OsString]) -> Result<(), Stop> {
    let page = read(&find(args.page.as_deref(), own_command.first().map(Path::new))?)?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
    let server = Server::http(address).map_err(|e| {
        Stop::bad(format!(
            "--port: cannot listen at {address}: {e}; choose another port, or 0 for any free one"
        ))
    })?;
    interrupt::listen();
    let url = format!("http://{}/", server.server_addr());
    print(&format!("The lab is at {url} (Ctrl-C ends it)\n"))?;
    if !args.no_open && !browse(&url) {
        warn("cannot start a browser: open the address by hand");
    }
    while !interrupt::requested() {
        let request = server.recv_timeout(POLL_INTERVAL).map_err(|e| Stop::bad(format!("{address}: {e}")))?;
        if let Some(request) = request {
            let response = answer(&page, request.method(), request.url());
            // A client that has gone needs no answer.
            let _ = request.respond(response);
        }
    }
    Ok(())
}

/// The folder of the page.
fn find(named: Option<&Path>, program: Option<&Path>) -> Result<PathBuf, Stop> {
    if let Some(folder) = named {
        return if folder.join(INDEX).is_file() {
            Ok(folder.to_owned())
        } else {
            Err(Stop::bad(format!("--page: no {INDEX} in {}; `make lab` builds it", folder.display())))
        };
    }
    let beside = program.and_then(|program| {
        let prefix = program.parent()?.parent()?;
        Some(prefix.join("share/skyhaul/lab"))
    });
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../site/lab/dist");
    let found = beside.into_iter().chain([checkout]).find(|folder| folder.join(INDEX).is_file());
    found.ok_or_else(|| {
        Stop::bad("the lab page is not built: run `make lab` in a checkout; elsewhere, name its folder site/lab/dist with --page")
    })
}

/// The served files, by their names in the URL. No other file is accessible.
fn read(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>, Stop> {
    let wrong = |path: &Path, e: &std::io::Error| Stop::bad(format!("cannot read {}: {e}", path.display()));
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(|e| wrong(folder, &e))? {
        let path = entry.map_err(|e| wrong(folder, &e))?.path();
        if let (true, Some(name)) = (path.is_file(), path.file_name().and_then(|n| n.to_str())) {
            files.insert(name.to_owned(), std::fs::read(&path).map_err(|e| wrong(&path, &e))?);
        }
    }
    Ok(files)
}

fn answer(
    page: &BTreeMap<String, Vec<u8>>,
    method: &Method,
    url: &str,
) -> Response<std::io::Cursor<Vec<u8>>> {
    if !matches!(method, Method::Get | Method::Head) {
        return Response::from_string("only GET and HEAD\n").with_status_code(405);
    }
    let path = url.split(['?', '#']).next().unwrap_or_default().trim_start_matches('/');
    let name = if path.is_empty() { INDEX } else { path };
    let Some(bytes) = page.get(name) else {
        return Response::from_string("no such file\n").with_status_code(404);
    };
    let mut response = Response::from_data(bytes.clone());
    for (key, value) in [
        ("Content-Type", content_type(name)),
        // The next server at this address may have another version of the page.
        ("Cache-Control", "no-cache"),
        ("X-Content-Type-Options", "nosniff"),
    ] {
        if let Ok(header) = Header::from_bytes(key.as_bytes(), value.as_bytes()) {
            response.add_header(header);
        }
    }
    response
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("css") => "text/css; charset=utf-8",
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("txt") => "text/plain; charset=utf-8",
        Some("wasm") => "application/wasm",
        _ => "application/octet-stream",
    }
}

/// Opens an address in the user's browser; false if that is impossible.
fn browse(url: &str) -> bool {
    let program = match std::env::consts::OS {
        "macos" => "open",
        "windows" => "explorer",
        _ => "xdg-open",
    };
    let quiet = || Stdio::null();
    Command::new(program).arg(url).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> BTreeMap<String, Vec<u8>> {
        [("index.html", "<p>"), ("main.js", "1")].map(|(n, t)| (n.to_owned(), t.as_bytes().to_vec())).into()
    }

    fn status(method: &Method, url: &str) -> u16 {
        answer(&page(), method, url).status_code().0
    }

    #[test]
    fn only_the_files_of_the_page_are_served() {
        for (url, expected) in [
            ("/", 200),
            ("/index.html", 200),
            ("/?a=b", 200),
            ("/main.js", 200),
            ("/other.js", 404),
            ("/../Cargo.toml", 404),
            ("/%2e%2e/Cargo.toml", 404),
            ("//etc/passwd", 404),
        ] {
            assert_eq!(status(&Method::Get, url), expected, "{url}");
        }
        assert_eq!((status(&Method::Head, "/"), status(&Method::Post, "/")), (200, 405));
    }

    #[test]
    fn files_have_their_content_type() {
        let response = answer(&page(), &Method::Get, "/main.js");
        let kinds: Vec<_> = response.headers().iter().filter(|h| h.field.equiv("Content-Type")).collect();
        assert!(kinds.iter().any(|h| h.value.as_str() == "text/javascript; charset=utf-8"), "{kinds:?}");
        // With another type browsers refuse to compile while they load.
        assert_eq!(content_type("skyhaul.wasm"), "application/wasm");
    }

    #[test]
    fn a_missing_page_is_an_error_that_says_how_to_build_it() {
        let e = find(Some(Path::new("/nonexistent")), None).expect_err("no page");
        assert!(e.to_string().contains("make lab"), "{e}");
    }
}
