"""The script that Streamlit runs from top to bottom at each refresh."""

from __future__ import annotations

import sys

import streamlit as st

from rldk.dashboard.client import reader_of
from rldk.dashboard.page.announcements import icon_of
from rldk.dashboard.page.main import draw_page

if __name__ == "__main__":  # as Streamlit names the script that it runs
    st.set_page_config(page_title="rldk", page_icon=icon_of("no_data"), layout="wide")
    draw_page(reader_of(sys.argv[1]), float(sys.argv[2]))
