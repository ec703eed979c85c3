"""The page that Streamlit runs."""

from __future__ import annotations

import streamlit as st

st.title("rldk")
