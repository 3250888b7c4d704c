package relay

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A relay that sleeps may have the processor for share out of every period, which is more than it
// needs and not all, as all is never granted.
const (
	share  = 90 * time.Microsecond
	period = 100 * time.Microsecond
)

// raisePriority puts this thread before all others, and lets it wake when it asked to and not 50 us
// later. With a deadline it comes even before the twentieth of the time that Linux keeps for
// threads that others starve (the fair server). One that never sleeps has a processor where only
// the kernel's own threads run, which nobody may starve.
func (r *Relay) raisePriority() error {
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return err
	}
	own, _ := r.cpuPlaces()
	if err := keepTo(own); err != nil { // to all, or there is no deadline
		return err
	}
	if r.hasOwnCPU() {
		return unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Nice: -20},
			0)
	}
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_DEADLINE,
		Flags:   unix.SCHED_FLAG_RESET_ON_FORK,
		Runtime: uint64(share), Deadline: uint64(period), Period: uint64(period)}
	if unix.SchedSetAttr(0, &attr, 0) == nil {
		return nil
	}
	return Before(10)
}

// hasOwnCPU reports whether the relay has a processor to itself.
func (r *Relay) hasOwnCPU() bool { return r.Restless && processors.Count() > 1 }

// Before puts this thread, and the threads and programs that it starts, before those that have no
// such place.
func Before(priority int) error {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: uint32(priority)}
	if err := unix.SchedSetAttr(0, &attr, 0); err != nil {
		return fmt.Errorf("a place before other threads: %w", err)
	}
	return nil
}

// processors are those of this program and of what it starts, where the last is reserved.
var processors unix.CPUSet

// Processors is how many there are, the reserved one among them.
func Processors() int { return processors.Count() }

// Reserve keeps this thread, and what it becomes, off the last of the processors, and names them
// all for Reserved.
func Reserve() (list string, err error) {
	if err := unix.SchedGetaffinity(0, &processors); err != nil {
		return "", err
	}
	var names []string
	for i := 0; len(names) < processors.Count(); i++ {
		if processors.IsSet(i) {
			names = append(names, strconv.Itoa(i))
		}
	}
	if len(names) > 1 {
		_, rest := splitCPUs()
		err = keepTo(rest)
	}
	return strings.Join(names, ","), err
}

// Reserved takes what Reserve has returned to the program that this one was.
func Reserved(list string) error {
	for name := range strings.SplitSeq(list, ",") {
		i, err := strconv.Atoi(name)
		if err != nil {
			return err
		}
		processors.Set(i)
	}
	return nil
}

// cpuPlaces are the processors of the relay and those of all else: the last and the others, or all
// of them for both.
func (r *Relay) cpuPlaces() (own, rest unix.CPUSet) {
	if r.hasOwnCPU() {
		return splitCPUs()
	}
	return processors, processors
}

// splitCPUs divides the processors into the last one and the others.
func splitCPUs() (last, rest unix.CPUSet) {
	at := 0
	for i, n := 0, processors.Count(); n > 0; i++ {
		if processors.IsSet(i) {
			at, n = i, n-1
		}
	}
	last.Set(at)
	rest = processors
	rest.Clear(at)
	return last, rest
}

// keepTo keeps this thread, and what it starts, to these processors. Where Reserve was not called
// there are none, and it stays where it is.
func keepTo(set unix.CPUSet) error {
	if set.Count() == 0 {
		return nil
	}
	return unix.SchedSetaffinity(0, &set)
}

// Run starts a program on one side of the road: in its namespace, and beside the relay.
func (r *Relay) Run(side int, start func() error) error {
	_, rest := r.cpuPlaces()
	return r.Dev[side].NS.Do(func() error { // on a thread that ends with it
		if err := keepTo(rest); err != nil {
			return err
		}
		return start()
	})
}

// stayAwake keeps the processors beside a relay that never sleeps from sleeping: to wake one takes
// a virtual machine as long as such a road may be late. Whatever else there is to run comes before
// this.
func (r *Relay) stayAwake() {
	_, rest := r.cpuPlaces()
	for range rest.Count() {
		go func() {
			runtime.LockOSThread() // and the thread ends with this goroutine
			if keepTo(rest) != nil ||
				unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0) != nil {
				return
			}
			for !r.stop.Load() {
			}
		}()
	}
}
