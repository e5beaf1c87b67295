"""The steps of the graphs: state in, partial state out."""
