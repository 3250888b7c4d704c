// Package sctp stands for github.com/free5gc/sctp in programs that are written for it, and needs no
// SCTP of the kernel: it has the same names, and behaves as they do on Linux, over
// github.com/rddp-go/rddp, whose package compat says where it differs. docs/migrating.md there says
// how to replace one by the other.
package sctp
