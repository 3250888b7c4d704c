//go:build !linux

package rdma

import "net"

// tcpSocket asks of the socket of a connection what package net does not. Here there is nothing to
// ask: one goroutine writes all, and FPDUs have the length that the MTU of the interface allows.
type tcpSocket struct{}

func newTCPSocket(net.Conn) *tcpSocket { return nil }

func (*tcpSocket) emss() int { return 0 }

func (*tcpSocket) tryWrite([][]byte) (int, error) { return 0, nil }
