// Package readrole decides which goroutine reads a connection or a link: a receive goroutine of its
// own, or one of the program that would only wait for it.
//
// What comes in is who asks, and whether it is back soon. What goes out is who has the role. The
// invariant: one goroutine at most has it, and nobody has it for MaxLeftAlone at most while a
// receive goroutine is there. Read Role first.
package readrole
