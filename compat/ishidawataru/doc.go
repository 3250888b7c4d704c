// Package sctp replaces github.com/ishidawataru/sctp in programs that are written for it, and needs
// no SCTP in the kernel. It has the same names, which behave as they do on Linux. It runs over
// github.com/rddp-go/rddp, whose package compat lists the differences. docs/migrating.md there says
// how to replace one package by the other.
package sctp
