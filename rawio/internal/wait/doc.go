// Package wait blocks the reader of a link's descriptors until there is something to read, and lets
// others interrupt it. Links use it to implement rawio.Interrupter.
package wait
