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

local segment = Proto("rddp.segment", "DDP Segment Chunk")

function segment.dissector(buf, pinfo, tree)
	local t = tree:add(rddp, buf(0, math.min(2, buf:len())), "DDP Segment Chunk")
	if not ssn(buf, t, 2) then
		return
	end
	t:append_text(", DDP-SSN " .. buf(0, 2):uint())
	pinfo.cols.protocol = "DDP/RDMAP"
	if buf:len() > 2 then
		segment_dissector:call(buf(2):tvb(), pinfo, tree)
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
