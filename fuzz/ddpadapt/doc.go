// Package ddpadapt holds the fuzz targets of the DDP adaptation (RFC 5043): a hostile peer against
// one Mux, and two conforming ends over a network that reorders at will.
package ddpadapt
