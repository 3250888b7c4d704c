// Package route answers what the system's routing says about a path: the source address it would
// choose and the IP-level MTU. It serves the links, and keeps answers for a few seconds.
package route
