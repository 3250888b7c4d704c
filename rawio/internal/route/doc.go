// Package route answers, for the links, what the system's routing says about a path: the source
// address it would choose and the IP-level MTU. Answers are kept for a few seconds.
package route
