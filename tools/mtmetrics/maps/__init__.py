"""Linear maps that bring the vectors of two languages together: the equations, and finding and reading their files."""
