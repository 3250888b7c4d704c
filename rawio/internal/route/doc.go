// Package route answers what the system's routing says about a path, for the links.
//
//   - In: a pair of addresses.
//   - Out: the source address that the system would choose, and the IP-level MTU. A watcher reports
//     changes of interfaces and addresses.
//   - Invariant: an answer is a few seconds old at most.
package route
