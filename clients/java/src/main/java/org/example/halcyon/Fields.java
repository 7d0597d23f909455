package org.example.halcyon;

import java.time.DateTimeException;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * The members of an object in a response. Members that are missing or of another type are an {@link InvalidResponseException}, except for the optional ones.
 *
 * @param members the members
 */
record Fields(Map<String, Object> members) {
    static Fields parse(String text) {
        try {
            return new Fields(Json.parseObject(text));
        } catch (IllegalArgumentException error) {
            throw new InvalidResponseException(text.substring(0, Math.min(200, text.length())), error);
        }
    }

    boolean has(String name) {
        return members.get(name) != null;
    }

    String text(String name) {
        return required(name, optionalText(name));
    }

    String optionalText(String name) {
        return members.get(name) instanceof String text ? text : null;
    }

    /** The integer; 0 if it is absent. */
    long integer(String name) {
        return members.get(name) instanceof Number number ? number.longValue() : 0;
    }

    Integer optionalInteger(String name) {
        return members.get(name) instanceof Number number ? Integer.valueOf(number.intValue()) : null;
    }

    double number(String name) {
        return required(name, optionalNumber(name));
    }

    Double optionalNumber(String name) {
        return members.get(name) instanceof Number number ? Double.valueOf(number.doubleValue()) : null;
    }

    /** The Boolean; false if it is absent. */
    boolean flag(String name) {
        return Boolean.TRUE.equals(members.get(name));
    }

    Instant time(String name) {
        return required(name, optionalTime(name));
    }

    Instant optionalTime(String name) {
        try {
            return members.get(name) instanceof String text ? Instant.parse(text) : null;
        } catch (DateTimeException error) {
            throw new InvalidResponseException(name + " is no time", error);
        }
    }

    FailureCode code() {
        return FailureCode.of(text("code"));
    }

    /** The numbers of an object; empty if it is absent. */
    Map<String, Double> numbers(String name) {
        Map<String, Double> numbers = new LinkedHashMap<>();
        if (has(name)) object(name, each -> each.members).forEach((key, value) -> {
            if (value instanceof Number number) numbers.put(key, number.doubleValue());
        });
        return numbers;
    }

    /** The converted object; null if it is absent. */
    @SuppressWarnings("unchecked")
    <T> T optional(String name, Function<Fields, T> convert) {
        return members.get(name) instanceof Map<?, ?> object ? convert.apply(new Fields((Map<String, Object>) object)) : null;
    }

    <T> T object(String name, Function<Fields, T> convert) {
        return required(name, optional(name, convert));
    }

    /** The converted objects of a list; empty if it is absent. */
    @SuppressWarnings("unchecked")
    <T> List<T> list(String name, Function<Fields, T> convert) {
        if (!(members.get(name) instanceof List<?> list)) return List.of();
        return list.stream().map(each -> {
            if (each instanceof Map<?, ?> object) return convert.apply(new Fields((Map<String, Object>) object));
            throw new InvalidResponseException(name + " has another type", null);
        }).toList();
    }

    /** The texts of a list; empty if it is absent. */
    List<String> texts(String name) {
        return members.get(name) instanceof List<?> list ? list.stream().map(String::valueOf).toList() : List.of();
    }

    private static <T> T required(String name, T value) {
        if (value == null) throw new InvalidResponseException(name + " is missing", null);
        return value;
    }
}
