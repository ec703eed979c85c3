"""The page that Streamlit runs, from top to bottom at each look."""

from __future__ import annotations

import sys

import streamlit as st

from rldk.dashboard.client import Client
from rldk.dashboard.page.main import draw_page


@st.cache_resource(show_spinner=False)
def client(folder: str) -> Client:
    """The one reader of this server."""
    return Client(folder)


st.set_page_config(page_title="rldk", layout="wide")
draw_page(client(sys.argv[1]), float(sys.argv[2]))
