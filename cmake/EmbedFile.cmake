# Writes the bytes of a file as a C array NAME with its length NAME_bytes, as HEADER declares them.
# Variables: FROM, TO, HEADER, NAME.
file(READ "${FROM}" bytes HEX)
string(LENGTH "${bytes}" digits)
math(EXPR n "${digits} / 2")
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(................................................................................)"
  "\\1\n" bytes "${bytes}")
file(WRITE "${TO}" "#include \"${HEADER}\"
const unsigned char ${NAME}[] = {
${bytes}
};
const size_t ${NAME}_bytes = ${n};
")
