//go:build !race

// Package race says whether the race detector is on, so that a test that is about numbers can do
// with smaller ones.
package race

// Enabled is true in a build with -race.
const Enabled = false
