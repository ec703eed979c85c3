"""The page, drawn with Streamlit from what the reader process answers."""
