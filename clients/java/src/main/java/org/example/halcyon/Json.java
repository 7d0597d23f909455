package org.example.halcyon;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * JSON (RFC 8259) as values of the JDK: maps, lists, strings, booleans, null, and numbers: Long, or Double for those with a fraction, an exponent or more
 * than 64 bits.
 */
final class Json {
    private static final int MAXIMUM_DEPTH = 512;

    private final String text;
    private int position;

    private Json(String text) {
        this.text = text;
    }

    /** An object with these names and values, in this order. */
    static Map<String, Object> object(Object... namesAndValues) {
        Map<String, Object> members = new LinkedHashMap<>();
        for (int index = 0; index < namesAndValues.length; index += 2) members.put((String) namesAndValues[index], namesAndValues[index + 1]);
        return members;
    }

    /** Parses a text. Throws IllegalArgumentException if it is not JSON. */
    static Object parse(String text) {
        Json parser = new Json(text);
        Object value = parser.value(0);
        parser.skipSpace();
        if (parser.position < text.length()) throw parser.error();
        return value;
    }

    /** Parses a text that must be an object. */
    @SuppressWarnings("unchecked")
    static Map<String, Object> parseObject(String text) {
        if (parse(text) instanceof Map<?, ?> object) return (Map<String, Object>) object;
        throw new IllegalArgumentException("not a JSON object");
    }

    /** Writes a value without spaces. Values with {@link JsonValue} are written as those. */
    static String write(Object value) {
        StringBuilder text = new StringBuilder();
        write(value, text, Json::number);
        return text.toString();
    }

    static void write(Object value, StringBuilder text, Function<Number, String> number) {
        if (value instanceof JsonValue other) {
            write(other.json(), text, number);
        } else if (value instanceof Map<?, ?> members) {
            char separator = '{';
            for (Map.Entry<?, ?> member : members.entrySet()) {
                text.append(separator);
                write(String.valueOf(member.getKey()), text);
                text.append(':');
                write(member.getValue(), text, number);
                separator = ',';
            }
            text.append(members.isEmpty() ? "{}" : "}");
        } else if (value instanceof Collection<?> elements) {
            char separator = '[';
            for (Object element : elements) {
                text.append(separator);
                write(element, text, number);
                separator = ',';
            }
            text.append(elements.isEmpty() ? "[]" : "]");
        } else if (value instanceof CharSequence characters) {
            write(characters.toString(), text);
        } else if (value instanceof Number each) {
            text.append(number.apply(each));
        } else if (value == null || value instanceof Boolean) {
            text.append(value);
        } else {
            throw new IllegalArgumentException(value.getClass() + " is not a JSON value");
        }
    }

    private static String number(Number number) {
        double value = number.doubleValue();
        if (Double.isNaN(value) || Double.isInfinite(value)) throw new IllegalArgumentException(number + " is not a JSON number");
        boolean isFloating = number instanceof Double || number instanceof Float;
        return isFloating && value == Math.rint(value) && Math.abs(value) < 1L << 53 ? Long.toString((long) value) : number.toString();
    }

    private static void write(String string, StringBuilder text) {
        text.append('"');
        for (int index = 0; index < string.length(); index++) {
            char each = string.charAt(index);
            switch (each) {
                case '"', '\\' -> text.append('\\').append(each);
                case '\n' -> text.append("\\n");
                case '\r' -> text.append("\\r");
                case '\t' -> text.append("\\t");
                default -> {
                    if (each < ' ') text.append(String.format("\\u%04x", (int) each));
                    else text.append(each);
                }
            }
        }
        text.append('"');
    }

    private Object value(int depth) {
        skipSpace();
        if (position == text.length() || depth > MAXIMUM_DEPTH) throw error();
        switch (text.charAt(position)) {
            case '{':
                return object(depth + 1);
            case '[':
                return array(depth + 1);
            case '"':
                return string();
            case 't':
                return word("true", true);
            case 'f':
                return word("false", false);
            case 'n':
                return word("null", null);
            default:
                return number();
        }
    }

    private Map<String, Object> object(int depth) {
        Map<String, Object> members = new LinkedHashMap<>();
        position++;
        if (next('}')) return members;
        do {
            skipSpace();
            String name = string();
            expect(':');
            members.put(name, value(depth));
        } while (next(','));
        expect('}');
        return members;
    }

    private List<Object> array(int depth) {
        List<Object> elements = new ArrayList<>();
        position++;
        if (next(']')) return elements;
        do {
            elements.add(value(depth));
        } while (next(','));
        expect(']');
        return Collections.unmodifiableList(elements);
    }

    private String string() {
        StringBuilder string = new StringBuilder();
        if (!next('"')) throw error();
        while (position < text.length()) {
            char each = text.charAt(position++);
            if (each == '"') return string.toString();
            if (each < ' ') break;
            if (each != '\\') {
                string.append(each);
                continue;
            }
            if (position == text.length()) break;
            char escape = text.charAt(position++);
            int index = "\"\\/bfnrt".indexOf(escape);
            if (index >= 0) {
                string.append("\"\\/\b\f\n\r\t".charAt(index));
            } else if (escape == 'u' && position + 4 <= text.length()) {
                try {
                    string.append((char) Integer.parseInt(text, position, position + 4, 16));
                } catch (NumberFormatException notHexadecimal) {
                    break;
                }
                position += 4;
            } else {
                break;
            }
        }
        throw error();
    }

    private Object word(String word, Object value) {
        if (!text.startsWith(word, position)) throw error();
        position += word.length();
        return value;
    }

    private Number number() {
        int start = position;
        while (position < text.length() && "+-.0123456789eE".indexOf(text.charAt(position)) >= 0) position++;
        String number = text.substring(start, position);
        if (!number.matches("-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][-+]?[0-9]+)?")) throw error();
        if (number.length() < 19 && number.chars().allMatch(each -> each == '-' || Character.isDigit(each))) return Long.valueOf(number);
        return Double.valueOf(number);
    }

    private boolean next(char expected) {
        skipSpace();
        if (position == text.length() || text.charAt(position) != expected) return false;
        position++;
        return true;
    }

    private void expect(char expected) {
        if (!next(expected)) throw error();
    }

    private void skipSpace() {
        while (position < text.length() && " \t\r\n".indexOf(text.charAt(position)) >= 0) position++;
    }

    private IllegalArgumentException error() {
        return new IllegalArgumentException("invalid JSON at character " + position);
    }
}
