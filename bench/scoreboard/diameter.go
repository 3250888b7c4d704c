package main

// diameterCommand runs compat/ishidawataru/diameter, which speaks as our own ends do. It is a
// module of its own, as go-diameter is built with a package replaced.
func diameterCommand(b *bench, e *end) []string { return []string{b.diameter, e.encodeJSON()} }
