// Package sctp holds the fuzz targets of the SCTP endpoint and association: a peer that sends
// whatever it likes, in every state, with the right tag and checksum.
package sctp
