// Package wait blocks the reader of a link's descriptors until there is something to read.
//
//   - In: descriptors, and how to wait (rawio.Pause).
//   - Out: the reader goes on, because something can be read, or because another goroutine has
//     interrupted it (rawio.Interrupter).
//   - Invariant: a packet that nobody waits for wakes no thread.
package wait
