"""What notebooks show."""

import html.parser

import skyhaul as sh
from skyhaul import _html

SHORT = {"duration": "2 s", "flows.bulk.count": 2}


class Balanced(html.parser.HTMLParser):
    """Every element that is opened is closed, in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.tags = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_results_and_checks():
    title = "<script>alert(1)</script>"
    shown = Balanced(sh.run("preset:peach-geo", set={**SHORT, "title": title})._repr_html_())
    assert title in shown.texts
    assert "script" not in shown.tags
    assert {"bulk", "peach", "sat", "forward"} <= set(shown.texts)
    check = sh.check("preset:peach-geo", set={"title": title})
    shown = Balanced(check._repr_html_())
    assert title in shown.texts
    assert set(check.warnings) <= set(shown.texts)


def test_studies_and_outcomes():
    study = sh.study("peach-2001/fig11", seeds=2, set={"duration": "5 s"})
    assert f"{len(study)} cells" in study._repr_html_()
    outcome = study.run()
    shown = Balanced(outcome._repr_html_())
    assert {c.says for c in outcome.claims} <= set(shown.texts)
    assert outcome.claims[0].verdict in shown.texts


def test_long_tables_are_counted():
    r = sh.run("preset:peach-geo", set={"duration": "2 s", "flows.bulk.count": 40})
    shown = Balanced(r.flows._repr_html_())
    assert shown.tags.count("tr") == 1 + _html.MOST
    assert "and 10 more rows" in shown.texts


def test_numbers():
    shown = [_html.number(x) for x in (None, float("nan"), True, 3, 1234.0, 0.00123456, 2541234.5, "x")]
    assert shown == ["–", "–", "yes", "3", "1,234", "0.001235", "2,541,234", "x"]
