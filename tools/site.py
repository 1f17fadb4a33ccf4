"""Builds the documentation as a site into target/site/html/VERSION.

    python tools/site.py

It is made from docs/ and from what has been built before: the lab after make lab, figures of the gallery
after make reproduce-quick and make lab, the API after make docs. What is missing is named. A link within the
site that leads nowhere fails the build. Other versions in target/site/html stay; each page has a selector of
versions.
"""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "target" / "site"
PAGES = OUT / "docs"
HTML = OUT / "html"
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
SITE = HTML / VERSION
SOURCE = "https://github.com/skyhaul/skyhaul/blob/main/"
# Results of the quick profile: of make reproduce-quick, or of CI.
RESULTS = [ROOT / "results" / "reproduce-quick", ROOT / "target" / "reproduce-quick"]


def say(text):
    print(f"site: {text}", file=sys.stderr)


def pages():
    """The pages, with links to files outside of docs/ made links to the repository."""
    for old in (PAGES, SITE):
        shutil.rmtree(old, ignore_errors=True)
    shutil.copytree(ROOT / "docs", PAGES)
    for page in PAGES.rglob("*.md"):
        home = ROOT / "docs" / page.relative_to(PAGES).parent

        def outside(found, home=home):
            target = (home / found[1]).resolve()
            if (ROOT / "docs") in target.parents or not target.exists():
                return found[0]
            return f"]({SOURCE}{target.relative_to(ROOT)}"

        page.write_text(re.sub(r"\]\((\.\./[^)#\s]*)", outside, page.read_text()))


def lab():
    built = ROOT / "site" / "lab" / "dist"
    if not (built / "index.html").is_file():
        say("without the lab: run make lab")
        return
    shutil.copytree(built, PAGES / "app")
    page = PAGES / "lab.md"
    page.write_text(
        page.read_text().replace(
            "\n\n", "\n\n[Open the lab](app/index.html){ .md-button .md-button--primary }\n\n", 1
        )
    )


def gallery():
    """The first figure of each study, in the order of each paper, with its title and command."""
    results = next((r for r in RESULTS if (r / "studies").is_dir()), None)
    draw = ROOT / "site" / "lab"
    if not (draw / "node_modules").is_dir():
        # Figures are drawn with what the lab is built with.
        results = None
    lines = [
        "# Gallery",
        "",
        "The first figure of each study, from the quick profile: few seeds. The command takes all of them.",
        "",
    ]
    figures = []
    (PAGES / "gallery").mkdir()
    for paper in sorted((ROOT / "studies").glob("*/paper.toml")):
        about = tomllib.loads(paper.read_text())
        lines += [f"## {about['title']}", ""]
        for name in about["order"]:
            study = tomllib.loads((paper.parent / f"{name}.toml").read_text())
            files = [Path(f["file"]).with_suffix("") for f in study.get("figure", [])]
            found = (
                [results / "studies" / paper.parent.name / name / "figures" / f"{f}.vl.json" for f in files]
                if results
                else []
            )
            drawn = next((f for f in found if f.is_file()), None)
            first = re.split(r"(?<=[.?!])\s", study.get("about", ""), maxsplit=1)[0]
            lines += [f"### {study['title']}", "", first, ""]
            if drawn:
                picture = PAGES / "gallery" / f"{paper.parent.name}-{name}.svg"
                figures += [str(drawn), str(picture)]
                lines += [f"![{study['title']}](gallery/{picture.name})", ""]
            lines += [f"`skyhaul study report {paper.parent.name}/{name}`", ""]
    (PAGES / "gallery.md").write_text("\n".join(lines))
    if not results:
        say("a gallery without figures: run make lab and make reproduce-quick")
    else:
        subprocess.run(["node", "figures.mjs", *figures], cwd=draw, check=True)
        say(f"{len(figures) // 2} figures")


def api():
    built = ROOT / "target" / "doc"
    if not (built / "skyhaul_sim").is_dir():
        say("without the API: run make docs")
        return
    shutil.copytree(built, SITE / "api", dirs_exist_ok=True)


def versions():
    """What the selector of the theme reads, and a way from the top to the latest version."""

    def order(name):
        return [int(part) for part in re.findall(r"\d+", name)]

    found = sorted(
        (d.parent.parent.name for d in HTML.glob("*/search/search_index.json")), key=order, reverse=True
    )
    entries = [{"version": v, "title": v, "aliases": ["latest"] if v == found[0] else []} for v in found]
    (HTML / "versions.json").write_text(json.dumps(entries, indent=1) + "\n")
    (HTML / "index.html").write_text(
        f'<!doctype html><meta charset="utf-8"><title>Skyhaul</title>'
        f'<meta http-equiv="refresh" content="0; url={found[0]}/index.html">'
        f'<a href="{found[0]}/index.html">Skyhaul {found[0]}</a>\n'
    )


def main():
    pages()
    lab()
    gallery()
    config = ROOT / "site" / "mkdocs.yml"
    mkdocs = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--config-file", str(config)]
    mkdocs += ["--site-dir", str(SITE)]
    done = subprocess.run(mkdocs, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    api()
    versions()
    index = json.loads((SITE / "search" / "search_index.json").read_text())
    say(f"{len(index['docs'])} sections in {SITE}")


if __name__ == "__main__":
    main()
