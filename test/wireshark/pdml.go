package main

import (
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
)

// field is one field of tshark's PDML. Fields of the same name follow each other in the order of
// the packet.
type field struct {
	Name  string `xml:"name,attr"`
	Show  string `xml:"show,attr"`
	Value string `xml:"value,attr"`
}

// numberValue returns the field's value; that of bits is shifted down.
func (f field) numberValue() (uint64, error) {
	if f.Value == "" {
		return strconv.ParseUint(f.Show, 0, 64)
	}
	return strconv.ParseUint(f.Value, 16, 64)
}

// chunk is one DATA chunk as Wireshark sees it: all fields from its chunk type to the next one's.
type chunk struct {
	frame    int
	from, to uint64 // SCTP ports
	fields   []field
}

// firstField returns the first field of a name, and whether there is one.
func (c *chunk) firstField(name string) (field, bool) {
	for _, f := range c.fields {
		if f.Name == name {
			return f, true
		}
	}
	return field{}, false
}

// numberField returns the value of a field that must be there.
func (c *chunk) numberField(name string) (uint64, error) {
	f, ok := c.firstField(name)
	if !ok {
		return 0, fmt.Errorf("frame %d: there is no %s", c.frame, name)
	}
	v, err := f.numberValue()
	if err != nil {
		return 0, fmt.Errorf("frame %d: %s is %q, %q: %w", c.frame, name, f.Show, f.Value, err)
	}
	return v, nil
}

// octetsField returns the value of a field of octets.
func (c *chunk) octetsField(name string) ([]byte, bool) {
	f, ok := c.firstField(name)
	if !ok {
		return nil, false
	}
	b, err := hex.DecodeString(f.Value)
	return b, err == nil
}

// tsharkVersion returns what tshark calls itself.
func tsharkVersion() (string, error) {
	out, err := exec.Command("tshark", "--version").Output()
	line, _, _ := strings.Cut(string(out), "\n")
	return line, err
}

// runTshark has tshark decode a capture with the script, and returns its DATA chunks in the order
// of the capture, and what it found wrong.
func runTshark(capture, script string) (chunks []*chunk, faults []string, err error) {
	cmd := exec.Command("tshark", "-n", "-r", capture, "-X", "lua_script:"+script,
		"-o", "sctp.checksum:CRC 32c",
		"--disable-protocol", "rpcordma", // which takes any short Send for RPC over RDMA, malformed
		// It puts Sends together by packet, and so those that share one, as SCTP has them, in the
		// wrong way.
		"-o", "iwarp_ddp_rdmap.reassemble_iwarp_rdma_send:FALSE",
		"-T", "pdml")
	var diagnosis strings.Builder
	cmd.Stderr = &diagnosis
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	chunks, faults, err = parsePDML(out)
	if e := cmd.Wait(); e != nil {
		return nil, nil, fmt.Errorf("tshark: %w: %s", e, diagnosis.String())
	}
	return chunks, faults, err
}

func parsePDML(r io.Reader) (chunks []*chunk, faults []string, err error) {
	var c *chunk
	var frame int
	var from, to uint64
	d := xml.NewDecoder(r)
	for {
		token, err := d.Token()
		if err == io.EOF {
			return chunks, faults, nil
		}
		if err != nil {
			return nil, nil, err
		}
		e, ok := token.(xml.StartElement)
		switch {
		case !ok:
			continue
		case e.Name.Local == "packet":
			frame++
			c = nil
			continue
		case e.Name.Local != "field" && e.Name.Local != "proto":
			continue
		}
		f := fieldOf(e)
		switch f.Name {
		case "sctp.srcport":
			if from, err = f.numberValue(); err != nil {
				return nil, nil, err
			}
		case "sctp.dstport":
			if to, err = f.numberValue(); err != nil {
				return nil, nil, err
			}
		case "sctp.chunk_type":
			c = nil
			if f.Show == "0" {
				c = &chunk{frame: frame, from: from, to: to}
				chunks = append(chunks, c)
			}
		case "sctp.checksum.status":
			if f.Show != "1" {
				faults = append(faults, fmt.Sprintf("frame %d: the checksum is not good", frame))
			}
		case "_ws.malformed":
			faults = append(faults, fmt.Sprintf("frame %d: malformed", frame))
		case "_ws.expert.message":
			if strings.HasPrefix(f.Show, "Possible traceroute") {
				break // the system has chosen a UDP port of those that traceroute uses
			}
			faults = append(faults, fmt.Sprintf("frame %d: %s", frame, f.Show))
		}
		if c != nil {
			c.fields = append(c.fields, f)
		}
	}
}

func fieldOf(e xml.StartElement) (f field) {
	for _, a := range e.Attr {
		switch a.Name.Local {
		case "name":
			f.Name = a.Value
		case "show":
			f.Show = a.Value
		case "value":
			f.Value = a.Value
		}
	}
	return f
}
