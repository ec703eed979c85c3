"""Reports about runs: one HTML file, plots as PNG, and a summary in Markdown.

from rldk.report import Case, page, write_report

case = Case(judge_run(run))
write_report("report.html", page([case]))
"""

from __future__ import annotations

from rldk.report.case import Case
from rldk.report.markdown import markdown
from rldk.report.page import page
from rldk.report.write import write_pictures, write_report

__all__ = ["Case", "markdown", "page", "write_pictures", "write_report"]
