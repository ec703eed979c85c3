"""The parts of the page; each is drawn by a function that asks the reader and writes to Streamlit."""
