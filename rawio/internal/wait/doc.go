// Package wait blocks the reader of a link's descriptors until there is something to read, and lets
// others interrupt it: it is what a rawio.Interrupter is made of.
package wait
