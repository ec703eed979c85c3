"""Text from a log stays text on every page."""

from __future__ import annotations

from markupsafe import Markup

from rldk.judge.incidents.incident import Incident
from rldk.present.html import Table, badge, code, part, templates, text, with_code

HOSTILE = "</td><script>alert(1)</script>\"'\x1b[31m\u202e"


def test_text_is_cut_cleaned_and_escaped() -> None:
    assert text("<b>\x1b[31m\"'&") == "&lt;b&gt;&#34;&#39;&amp;" and len(text("x" * 1_000_000)) == 400
    assert code("<i>") == "<code>&lt;i&gt;</code>" and badge("no_data") == '<span class="badge no_data">no data</span>'
    assert "<" not in text(HOSTILE) and '"' not in badge('" onload="x').split("badge ")[1].split('">')[0]


def test_names_between_backticks_are_set_as_code_and_stay_text() -> None:
    assert with_code("Lower `lr` (it was 1) and `<b>`.") == "Lower <code>lr</code> (it was 1) and <code>&lt;b&gt;</code>."
    assert with_code("one ` alone") == "one ` alone" and "<script>" not in with_code(f"`{HOSTILE}`")
    assert "<script>" not in with_code("`<`script>`alert(1)`")


def test_a_template_escapes_everything_but_markup() -> None:
    made = templates("rldk.present").from_string("{{ given }} {{ html }} {{ long }}")
    shown = made.render(given=HOSTILE, html=Markup("<b>ours</b>"), long="y" * 5000)
    assert "<script>" not in shown and "<b>ours</b>" in shown and "\x1b" not in shown and "\u202e" not in shown
    assert len(shown) < 1200


def test_cells_of_a_table_are_escaped_and_numbers_are_aligned() -> None:
    shown = part("table", Table("Runs", ("run", "events"), [(HOSTILE, 3), (Markup("<i>ours</i>"), 4)], (1,)))
    assert "<script>" not in shown and "<td><i>ours</i></td>" in shown and '<td class="number">3</td>' in shown
    assert "<caption>Runs</caption>" in shown


def test_an_incident_card_says_what_to_do_and_where_it_was_good() -> None:
    incident = Incident(
        "reward_hacking", HOSTILE, "critical", 120, 12, [0], "kl_explosion", ["step 120: KL rose."], ["learning_rate_too_high"],
        "Stop the run.", 100, 150,
    )  # fmt: skip
    shown = part("incident_card", incident, 2)
    assert "<script>" not in shown and 'class="card incident critical"' in shown and "at step 120, recovered at step 150" in shown
    for words in ("Step 120: KL rose.", "Stop the run.", "KL explosion", "<p>100</p>", "the learning rate is too high"):
        assert words in shown
