package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

const (
	etcdPort    = 2379
	maxKnock    = 256             // bytes of a Node's name
	doorTimeout = 5 * time.Second // for the name, and for whoever was sent to a port to come
)

// plain is a client that makes no frames: a connection of the embedded API server.
type plain struct {
	conn   net.Conn
	buffer [32 << 10]byte
}

func (p *plain) read() ([]byte, error) {
	n, err := p.conn.Read(p.buffer[:])
	if n > 0 {
		return p.buffer[:n], nil
	}
	return nil, err
}

func (p *plain) write(piece []byte) error {
	_, err := p.conn.Write(piece)
	return err
}

func (p *plain) finish() { p.conn.Close() }

func (p *plain) connection() net.Conn { return p.conn }

func (k *kubelet) answerDoor(knocks net.Listener) {
	for {
		conn, err := knocks.Accept()
		if err != nil {
			return
		}
		go k.knocked(conn)
	}
}

// knocked answers one line with one line, and then waits for the connection that it asked for.
func (k *kubelet) knocked(conn net.Conn) {
	conn.SetDeadline(time.Now().Add(doorTimeout))
	name, err := bufio.NewReader(io.LimitReader(conn, maxKnock)).ReadString('\n')
	if err != nil {
		conn.Close()
		return
	}
	name = strings.TrimSpace(name)
	gate, pod, err := k.open(name)
	if err != nil {
		fmt.Fprintln(conn, err)
		conn.Close()
		return
	}
	fmt.Fprintln(conn, gate.Addr().(*net.TCPAddr).Port)
	conn.Close()
	gate.SetDeadline(time.Now().Add(doorTimeout))
	came, err := gate.AcceptTCP()
	gate.Close()
	if err != nil {
		pod.Close()
		return
	}
	came.SetNoDelay(true)
	k.carry(name, &plain{conn: came}, pod)
}

// open is connected to the Pod of a Node, and listens for the one who asked.
func (k *kubelet) open(name string) (*net.TCPListener, net.Conn, error) {
	n, known := k.ask(name)
	if !known {
		return nil, nil, fmt.Errorf("no Node %q here", name)
	}
	pod, err := n.dial(etcdPort)
	if err != nil {
		return nil, nil, err
	}
	gate, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		pod.Close()
		return nil, nil, err
	}
	return gate, pod, nil
}
