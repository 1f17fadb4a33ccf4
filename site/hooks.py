"""What MkDocs does differently for pages that a script writes."""

# Who writes which page: an edit belongs there.
WRITTEN = {"gallery.md": "tools/site.py", "scenario-format.md": "tools/scenario_format.py"}


def on_page_context(context, page, config, **_):
    """Leads those who want to edit a page to what writes it."""
    script = WRITTEN.get(page.file.src_uri)
    if script and config.edit_uri:
        page.edit_url = config.edit_uri.removesuffix("docs/") + script
    return context
