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
    assert title in "".join(shown.texts)
    assert shown.tags == ["pre"]


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


def test_a_check_shows_what_the_command_prints():
    check = sh.check("preset:peach-geo")
    assert Balanced(check._repr_html_()).texts == [str(check)]


def test_a_run_shows_the_numbers_of_its_text():
    r = sh.run("preset:peach-geo", set=SHORT)
    shown = Balanced(r._repr_html_()).texts
    for line in str(r).splitlines()[1:]:
        for cell in filter(None, line.split("  ")):
            assert cell.strip() in shown, cell


def test_numbers():
    values = (None, float("nan"), True, 3, 1234.0, 0.00123456, 2541234.6, 2e9, -0.5, "x")
    shown = [_html.number(x) for x in values]
    assert shown == ["–", "–", "yes", "3", "1234", "0.001235", "2541235", "2.00e9", "−0.5", "x"]
    assert _html.estimate(0.5, 0.00123) == "0.5000 ± 0.0012"
    assert (_html.estimate(7.25, None), _html.estimate(None, None)) == ("7.25", "–")
