"""A hook of MkDocs for pages that a script writes."""

# Pages, and the scripts that write them.
WRITTEN = {"gallery.md": "tools/site.py", "scenario-format.md": "tools/scenario_format.py"}


def on_page_context(context, page, config, **_):
    """Makes the edit link of a page lead to the script that writes it."""
    script = WRITTEN.get(page.file.src_uri)
    if script and config.edit_uri:
        page.edit_url = config.edit_uri.removesuffix("docs/") + script
    return context
