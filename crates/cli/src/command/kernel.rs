//! `skyhaul kernel`.

use crate::args::{KernelCommand, KernelControls, KernelListArgs, KernelRemoveArgs};
use crate::output::print;
use crate::stop::Stop;
use serde_json::json;
use skyhaul_kernel::{CONTROLS, Control, default_control, find, install, is_available, remove};
use skyhaul_lab::text::Grid;

pub(crate) fn run(command: &KernelCommand) -> Result<(), Stop> {
    match command {
        KernelCommand::Install(args) => install_all(args),
        KernelCommand::List(args) => list(args),
        KernelCommand::Remove(args) => remove_all(args),
    }
}

/// The controls of these names: every name is checked before the kernel is changed.
fn named(names: &[String]) -> Result<Vec<&'static Control>, Stop> {
    names.iter().map(|n| find(n).map_err(Stop::bad)).collect()
}

fn install_all(args: &KernelControls) -> Result<(), Stop> {
    for control in named(&args.controls)? {
        install(control).map_err(Stop::bad)?;
        print(&format!("{}: installed as {}\n", control.name, control.kernel))?;
    }
    Ok(())
}

fn remove_all(args: &KernelRemoveArgs) -> Result<(), Stop> {
    let controls = if args.all {
        CONTROLS.iter().filter(|c| is_available(c.kernel)).collect()
    } else {
        named(&args.controls)?
    };
    for control in controls {
        remove(control).map_err(Stop::bad)?;
        print(&format!("{}: removed\n", control.name))?;
    }
    Ok(())
}

fn list(args: &KernelListArgs) -> Result<(), Stop> {
    let default = default_control();
    let state = |c: &Control| match (is_available(c.kernel), default == c.kernel) {
        (false, _) => "not installed",
        (true, false) => "installed",
        (true, true) => "installed, the default",
    };
    if args.json {
        let all: Vec<_> = CONTROLS
            .iter()
            .map(|c| {
                json!({
                    "name": c.name, "kernel": c.kernel, "installed": is_available(c.kernel), "default": default == c.kernel,
                    "differs": c.differs,
                })
            })
            .collect();
        return print(&format!("{:#}\n", json!(all)));
    }
    let mut table = Grid::new(&["control", "in the kernel", "state", "what differs"]).left(1).left(2).left(3);
    for c in CONTROLS {
        table.row([c.name, c.kernel, state(c), c.differs].map(str::to_owned).to_vec());
    }
    print(&table.lines(0))
}
