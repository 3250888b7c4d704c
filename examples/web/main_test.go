package main

func Example() {
	main()
	// Output:
	// /first of sctp.example by HTTP/2.0, encrypted: true
	// /second of sctp.example by HTTP/2.0, encrypted: true
}
