package main

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
)

const (
	opText   = 1
	opBinary = 2
	opClose  = 8
	opPing   = 9
	opPong   = 10

	maxFrame = 32 << 20 // what the kubelet's library takes
	protocol = "v4.channel.k8s.io"
)

// socket is the server's side of a WebSocket: RFC 6455 as far as golang.org/x/net/websocket goes, which
// the kubelet's streaming code is built on. Each frame is a message of its own.
type socket struct {
	conn net.Conn
	in   *bufio.Reader
	mu   sync.Mutex // one frame at a time
}

// upgrade answers 101, or an error that the API server passes on.
func upgrade(w http.ResponseWriter, r *http.Request) (*socket, error) {
	key := r.Header.Get("Sec-WebSocket-Key")
	if r.Method != http.MethodGet || !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") || key == "" {
		http.Error(w, "you must specify at least 1 port", http.StatusBadRequest)
		return nil, errors.New("not a WebSocket upgrade")
	}
	offered := false
	for _, name := range strings.Split(r.Header.Get("Sec-WebSocket-Protocol"), ",") {
		offered = offered || strings.TrimSpace(name) == protocol
	}
	if !offered {
		http.Error(w, "unsupported sub-protocol", http.StatusForbidden)
		return nil, errors.New("no " + protocol)
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, err
	}
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	_, err = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: %s\r\n\r\n", base64.StdEncoding.EncodeToString(sum[:]), protocol)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &socket{conn: conn, in: buffered.Reader}, nil
}

func (s *socket) send(op byte, parts ...[]byte) error {
	length := 0
	for _, part := range parts {
		length += len(part)
	}
	frame := []byte{0x80 | op}
	switch {
	case length < 126:
		frame = append(frame, byte(length))
	case length < 1<<16:
		frame = binary.BigEndian.AppendUint16(append(frame, 126), uint16(length))
	default:
		frame = binary.BigEndian.AppendUint64(append(frame, 127), uint64(length))
	}
	for _, part := range parts {
		frame = append(frame, part...)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.conn.Write(frame)
	return err
}

// close says goodbye with a code and ends the connection.
func (s *socket) close(code uint16) {
	s.send(opClose, binary.BigEndian.AppendUint16(nil, code))
	s.conn.Close()
}

// receive returns the next data message; pings are answered on the way. io.EOF after a close.
func (s *socket) receive() ([]byte, error) {
	for {
		op, payload, err := s.frame()
		if err != nil {
			return nil, err
		}
		switch op {
		case opText, opBinary, 0: // a continuation is taken for a message, as the library does it
			return payload, nil
		case opPing:
			if err := s.send(opPong, payload); err != nil {
				return nil, err
			}
		case opPong:
		case opClose:
			return nil, io.EOF
		default:
			return nil, fmt.Errorf("opcode %d", op)
		}
	}
}

func (s *socket) frame() (byte, []byte, error) {
	var head [2]byte
	if _, err := io.ReadFull(s.in, head[:]); err != nil {
		return 0, nil, err
	}
	length := uint64(head[1] & 0x7f)
	if extra := map[uint64]int{126: 2, 127: 8}[length]; extra > 0 {
		var bytes [8]byte
		if _, err := io.ReadFull(s.in, bytes[8-extra:]); err != nil {
			return 0, nil, err
		}
		length = binary.BigEndian.Uint64(bytes[:])
	}
	if head[1]&0x80 == 0 {
		s.close(1002)
		return 0, nil, errors.New("a frame without mask")
	}
	if length > maxFrame {
		s.close(1009)
		return 0, nil, errors.New("a frame that is too long")
	}
	var mask [4]byte
	if _, err := io.ReadFull(s.in, mask[:]); err != nil {
		return 0, nil, err
	}
	payload := make([]byte, length)
	if _, err := io.ReadFull(s.in, payload); err != nil {
		return 0, nil, err
	}
	for i := range payload {
		payload[i] ^= mask[i%4]
	}
	return head[0] & 0x0f, payload, nil
}

// read skips what is for a channel that nobody reads.
func (s *socket) read() ([]byte, error) {
	for {
		message, err := s.receive()
		if err != nil {
			return nil, err
		}
		if len(message) > 1 && message[0] == 0 {
			return message[1:], nil
		}
	}
}

func (s *socket) write(piece []byte) error { return s.send(opBinary, []byte{0}, piece) }

func (s *socket) finish() { s.close(1000) }

func (s *socket) connection() net.Conn { return s.conn }

// fail tells the client in the words of containerd why there is no connection.
func (s *socket) fail(port uint64, why error) {
	text := fmt.Sprintf("error forwarding port %d to pod 0123456789abcdef, uid : failed to execute portforward in network "+
		"namespace \"host\": failed to connect to localhost:%d inside namespace \"0123456789abcdef\", %v", port, port, why)
	s.send(opBinary, []byte{1}, []byte(text))
	s.close(1000)
}
