package sctp

import "encoding/binary"

// Notification is a notification that SCTPRead returns (RFC 6458 section 6.1).
type Notification interface {
	Type() SCTPNotificationType
	Flags() uint16
	Length() uint32
}

// event has the octets of a notification, in the machine's byte order.
type event []byte

func (e event) u16(at int) uint16          { return binary.NativeEndian.Uint16(e[at:]) }
func (e event) u32(at int) uint32          { return binary.NativeEndian.Uint32(e[at:]) }
func (e event) Type() SCTPNotificationType { return SCTPNotificationType(e.u16(0)) }
func (e event) Flags() uint16              { return e.u16(2) }
func (e event) Length() uint32             { return e.u32(4) }

// SCTPAssocChangeEvent is sctp_assoc_change (section 6.1.1).
type SCTPAssocChangeEvent struct{ e event }

// SCTPShutdownEvent is sctp_shutdown_event (section 6.1.5).
type SCTPShutdownEvent struct{ e event }

// parseNotification returns a copy of what was read. It returns nil for another type, or if the
// notification was cut.
func parseNotification(b []byte) Notification {
	e := append(event(nil), b...)
	switch {
	case len(e) >= 20 && e.Type() == SCTP_ASSOC_CHANGE:
		return &SCTPAssocChangeEvent{e}
	case len(e) >= 12 && e.Type() == SCTP_SHUTDOWN_EVENT:
		return &SCTPShutdownEvent{e}
	}
	return nil
}

// Type returns SCTP_ASSOC_CHANGE.
func (s *SCTPAssocChangeEvent) Type() SCTPNotificationType { return s.e.Type() }

// Flags returns 0.
func (s *SCTPAssocChangeEvent) Flags() uint16 { return s.e.Flags() }

// Length returns the length of the notification in octets.
func (s *SCTPAssocChangeEvent) Length() uint32 { return s.e.Length() }

// State returns what has happened.
func (s *SCTPAssocChangeEvent) State() SCTPState { return SCTPState(s.e.u16(8)) }

// OutboundStreams returns the number of outgoing streams.
func (s *SCTPAssocChangeEvent) OutboundStreams() uint16 { return s.e.u16(12) }

// InboundStreams returns the number of incoming streams.
func (s *SCTPAssocChangeEvent) InboundStreams() uint16 { return s.e.u16(14) }

// AssocID returns the number of the association.
func (s *SCTPAssocChangeEvent) AssocID() SCTPAssocID { return SCTPAssocID(s.e.u32(16)) }

// Info returns the ABORT chunk, if one has ended the association.
func (s *SCTPAssocChangeEvent) Info() []uint8 { return s.e[20:] }

// Type returns SCTP_SHUTDOWN_EVENT.
func (s *SCTPShutdownEvent) Type() SCTPNotificationType { return s.e.Type() }

// Flags returns 0.
func (s *SCTPShutdownEvent) Flags() uint16 { return s.e.Flags() }

// Length returns the length of the notification in octets.
func (s *SCTPShutdownEvent) Length() uint32 { return s.e.Length() }

// AssocID returns the number of the association.
func (s *SCTPShutdownEvent) AssocID() SCTPAssocID { return SCTPAssocID(s.e.u32(8)) }
