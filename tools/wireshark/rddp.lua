-- DDP over SCTP (RFC 5043) for Wireshark: payload protocol identifiers 16 (DDP segments) and 17 (DDP
-- stream session control). Segments go on to Wireshark's own dissector for DDP and RDMAP.
--
--   wireshark -X lua_script:rddp.lua capture.pcapng
--
-- Wireshark guesses that a Send may carry RPC over RDMA and calls short ones malformed; if none does,
-- add --disable-protocol rpcordma.
--
-- Or put the file into the personal Lua plugin folder (Help, About, Folders).

local rddp = Proto("rddp", "DDP over SCTP")

local functions = {
	[1] = "Session Initiate",
	[2] = "Session Accept",
	[3] = "Session Reject",
	[4] = "Session Terminate",
	-- RFC 6581 section 7
	[5] = "Enhanced Session Initiate",
	[6] = "Enhanced Session Accept",
	[7] = "Enhanced Session Reject",
}

local f = rddp.fields
f.ssn = ProtoField.uint16("rddp.ssn", "DDP-SSN", base.DEC)
f.fn = ProtoField.uint16("rddp.function", "Function Code", base.DEC, functions)
f.private = ProtoField.bytes("rddp.private", "Private Data")
f.private_len = ProtoField.uint16("rddp.private.length", "Private Data Length", base.DEC)
-- Wireshark 4.0 does not know Immediate Data (RFC 7306 section 6).
f.immediate = ProtoField.uint64("rddp.immediate", "Immediate Data", base.HEX)
-- What a Terminate Message quotes (RFC 5040 section 4.8). Wireshark 4.0 takes a DDP header for 14 octets where
-- an RDMAP header follows, which is when it has 18, and for 18 otherwise.
f.quoted_len = ProtoField.uint16("rddp.quoted.length", "Length of the quoted segment", base.DEC)
f.quoted_ddp = ProtoField.bytes("rddp.quoted.ddp", "Quoted DDP header")
f.quoted_rdma = ProtoField.bytes("rddp.quoted.rdma", "Quoted RDMAP header")
-- The four octets of enhanced connection data, RFC 6581 section 9.
f.enhanced = ProtoField.uint32("rddp.enhanced", "Enhanced Connection Data", base.HEX)
f.a = ProtoField.bool("rddp.enhanced.a", "A: peer-to-peer model", 32, nil, 0x80000000)
f.b = ProtoField.bool("rddp.enhanced.b", "B: zero-length FULPDU", 32, nil, 0x40000000)
f.ird = ProtoField.uint32("rddp.enhanced.ird", "IRD", base.DEC, nil, 0x3fff0000)
f.c = ProtoField.bool("rddp.enhanced.c", "C: zero-length RDMA Write", 32, nil, 0x00008000)
f.d = ProtoField.bool("rddp.enhanced.d", "D: zero-length RDMA Read", 32, nil, 0x00004000)
f.ord = ProtoField.uint32("rddp.enhanced.ord", "ORD", base.DEC, nil, 0x00003fff)

local short = ProtoExpert.new("rddp.short", "Message too short", expert.group.MALFORMED, expert.severity.ERROR)
local long = ProtoExpert.new("rddp.private.too_long", "More than 512 octets of private data", expert.group.PROTOCOL, expert.severity.ERROR)
local unknown = ProtoExpert.new("rddp.function.unknown", "Unknown function code", expert.group.PROTOCOL, expert.severity.ERROR)
rddp.experts = { short, long, unknown }

local segment_dissector = Dissector.get("iwarp_ddp_rdmap")

-- ssn adds the DDP-SSN, which begins every message, or says that there is none.
local function ssn(buf, tree, least)
	if buf:len() < least then
		tree:add_proto_expert_info(short)
		return false
	end
	tree:add(f.ssn, buf(0, 2))
	return true
end

-- opcode returns the RDMAP opcode of an untagged segment behind the DDP-SSN, or nil.
local function untagged_opcode(buf)
	if buf:len() >= 20 and buf(2, 1):bitfield(0) == 0 then
		return buf(3, 1):bitfield(4, 4)
	end
end

-- immediate shows the 8 octets of Immediate Data.
local function immediate(buf, tree)
	local opcode = untagged_opcode(buf)
	if buf:len() == 28 and (opcode == 8 or opcode == 9) then
		tree:add(f.immediate, buf(20, 8))
		tree:append_text(opcode == 8 and ", Immediate Data" or ", Immediate Data with SE")
	end
end

-- quoted shows what a Terminate Message quotes. It returns true where Wireshark would look for more.
local function quoted(buf, tree)
	if untagged_opcode(buf) ~= 7 or buf:len() < 26 then
		return false
	end
	local m, d, r = buf(22, 1):bitfield(0), buf(22, 1):bitfield(1), buf(22, 1):bitfield(2)
	local at = 24
	if m == 1 or d == 1 then
		tree:add(f.quoted_len, buf(at, 2))
		at = at + 2
	end
	local tagged = false
	if d == 1 and at < buf:len() then
		tagged = buf(at, 1):bitfield(0) == 1
		local n = math.min(tagged and 14 or 18, buf:len() - at)
		tree:add(f.quoted_ddp, buf(at, n))
		at = at + n
	end
	if r == 1 and at < buf:len() then
		tree:add(f.quoted_rdma, buf(at, math.min(28, buf:len() - at)))
	end
	return tagged and r == 0
end

local segment = Proto("rddp.segment", "DDP Segment Chunk")

function segment.dissector(buf, pinfo, tree)
	local t = tree:add(rddp, buf(0, math.min(2, buf:len())), "DDP Segment Chunk")
	if not ssn(buf, t, 2) then
		return
	end
	t:append_text(", DDP-SSN " .. buf(0, 2):uint())
	pinfo.cols.protocol = "DDP/RDMAP"
	if buf:len() > 2 then
		immediate(buf, t)
		local seg = buf(2):tvb()
		if quoted(buf, t) then
			local padded = buf(2):bytes()
			padded:append(ByteArray.new("00000000"))
			seg = padded:tvb("Terminate, with 4 octets that Wireshark expects")
		end
		segment_dissector:call(seg, pinfo, tree)
	end
end

local control = Proto("rddp.control", "DDP Stream Session Control")

local function private_data(buf, t, from)
	local n = buf:len() - from
	t:add(f.private_len, n):set_generated()
	if n > 0 then
		t:add(f.private, buf(from))
	end
	if buf:len() - 4 > 512 then
		t:add_proto_expert_info(long)
	end
end

function control.dissector(buf, pinfo, tree)
	local t = tree:add(rddp, buf(), "DDP Stream Session Control")
	if not ssn(buf, t, 4) then
		return
	end
	local fn = buf(2, 2):uint()
	local name = functions[fn] or ("function " .. fn)
	t:add(f.fn, buf(2, 2))
	t:append_text(", " .. name .. ", DDP-SSN " .. buf(0, 2):uint())
	pinfo.cols.protocol = "RDDP"
	pinfo.cols.info:append(name .. " ")
	if not functions[fn] then
		t:add_proto_expert_info(unknown)
	end
	if fn >= 5 and fn <= 7 and buf:len() >= 8 then
		local e = t:add(f.enhanced, buf(4, 4))
		for _, field in ipairs({ f.a, f.b, f.ird, f.c, f.d, f.ord }) do
			e:add(field, buf(4, 4))
		end
		private_data(buf, t, 8)
	else
		private_data(buf, t, 4)
	end
end

local ppi = DissectorTable.get("sctp.ppi")
ppi:add(16, segment)
ppi:add(17, control)
