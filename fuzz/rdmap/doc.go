// Package rdmap holds the fuzz targets of rdma/rdmap.
package rdmap
