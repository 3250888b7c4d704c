package compat

import "syscall"

func getEvents(s *Socket, _ []byte, f *structWriter) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	*f = append(*f, s.opts.events[:]...)
	return nil
}

// setEvents takes an older, shorter structure too. That leaves the events that it does not know as
// they are.
func setEvents(s *Socket, b []byte) error {
	for i := range b {
		s.opts.events[i] = byte(boolInt(b[i] != 0))
	}
	return nil
}

// eventOf returns the event that a sctp_event names by its notification type.
func eventOf(b []byte) (int, error) {
	i := int(nativeOrder.Uint16(b[4:])) - typeData
	if i < 0 || i >= numEvents {
		return 0, syscall.EINVAL
	}
	return i, nil
}

func getEvent(s *Socket, arg []byte, f *structWriter) error {
	i, err := eventOf(arg)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	*f = append(append(*f, arg[:6]...), s.opts.events[i], 0)
	return nil
}

func setEvent(s *Socket, b []byte) error {
	i, err := eventOf(b)
	if err == nil {
		s.opts.events[i] = byte(boolInt(b[6] != 0))
	}
	return err
}

// subscribesSenderDry reports whether a structure for optEvents or optEvent subscribes to the
// sender-dry event.
func subscribesSenderDry(name int, b []byte) bool {
	if name == optEvent {
		return nativeOrder.Uint16(b[4:]) == typeSenderDry && b[6] != 0
	}
	return len(b) > eventSenderDry && b[eventSenderDry] != 0
}
