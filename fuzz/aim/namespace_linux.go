package main

import "os"

// ownNamespace says whether this process is in another network namespace than the system's first
// process.
func ownNamespace() bool {
	self, err1 := os.Readlink("/proc/self/ns/net")
	first, err2 := os.Readlink("/proc/1/ns/net")
	return err1 == nil && err2 == nil && self != first
}
