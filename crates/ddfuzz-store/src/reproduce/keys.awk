# The keystrokes of a stream of bytes (numbers, as `od -An -v -tu1` writes them), one a line: a new
# size of the window, or two zeros and the key as octal escapes. As crates/ddfuzz-exec/src/terminal/mod.rs.
function width(at, w, k) {
    w = b[at] >= 194 && b[at] <= 223 ? 2 : b[at] >= 224 && b[at] <= 239 ? 3 : b[at] >= 240 && b[at] <= 244 ? 4 : 1
    for (k = 1; k < w; k++)
        if (b[at + k] < 128 || b[at + k] > 191)
            return 1
    # Not in the shortest form, of a surrogate, or above the last character.
    if (b[at] == 224 && b[at + 1] < 160 || b[at] == 237 && b[at + 1] > 159 || b[at] == 240 && b[at + 1] < 144 || b[at] == 244 && b[at + 1] > 143)
        return 1
    return w
}
{ for (i = 1; i <= NF; i++) b[n++] = $i + 0 }
END {
    for (i = 0; i < 8; i++) b[n + i] = -1
    for (at = 0; at < n; at += len) {
        if (b[at] != 27)
            len = width(at)
        else if (b[at + 1] == 91 && b[at + 2] == 77)
            len = n - at < 6 ? n - at : 6
        else if (b[at + 1] == 91) {
            for (end = at + 2; b[end] >= 32 && b[end] < 64; end++);
            len = end - at + (b[end] >= 64 && b[end] < 127)
        } else if (b[at + 1] == 79 && at + 2 < n)
            len = 3
        else
            len = b[at + 1] == 27 || b[at + 1] < 0 ? 1 : 1 + width(at + 1)
        key = text = ""
        for (i = at; i < at + len; i++) {
            key = key sprintf("\\%03o", b[i])
            text = text sprintf("%c", b[i] < 128 && b[i] > 0 ? b[i] : 1)
        }
        split(text, size, ";")
        if (text ~ /^\033\[8;[0-9]+;[0-9]+t$/ && size[2] + 0 >= 1 && size[2] + 0 <= 500 && size[3] + 0 >= 1 && size[3] + 0 <= 500)
            print size[2] + 0, size[3] + 0
        else
            print 0, 0, key
    }
}
