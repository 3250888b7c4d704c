// Package netns makes network namespaces, for tests and tools that must not touch the machine's
// network. A namespace has no name and disappears with its last descriptor, so that nothing is left
// behind even by a program that crashes. It exists on Linux only.
package netns
