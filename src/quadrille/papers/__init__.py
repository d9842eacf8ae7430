"""One module per paper: published numbers beside ours."""
